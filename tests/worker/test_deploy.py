"""The examples in `deploy/` are well-formed, and call commands that exist."""

from pathlib import Path

import pytest
import yaml

from detent.cli.app import VERBS

DEPLOY = Path(__file__).parents[2] / "deploy"


def commands(value) -> list[list[str]]:
    """Every list of arguments that begins with `detent`."""
    if isinstance(value, list) and value[:1] == ["detent"]:
        return [value]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [command for child in children for command in commands(child)]


def test_the_compose_file_has_the_services_and_their_volumes():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(compose["services"]) == {"postgres", "tables", "temporal", "page", "worker-1", "worker-2"}
    for service in compose["services"].values():
        assert ("image" in service) != ("build" in service)
        named = [volume.split(":")[0] for volume in service["volumes"] if not volume.startswith("$")]
        assert set(named) <= set(compose["volumes"])
        assert set(service.get("depends_on", {})) <= set(compose["services"])
    assert (DEPLOY / "Dockerfile").exists()


def test_the_services_of_compose_are_pinned_limited_and_wait_for_each_other():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for service in services.values():
        _, _, tag = service.get("image", "built:here").partition(":")
        assert tag not in ("", "latest")
        for needed, how in service.get("depends_on", {}).items():
            ends = services[needed]["restart"] == "on-failure"
            assert how["condition"] == ("service_completed_successfully" if ends else "service_healthy")
            assert ends or "healthcheck" in services[needed]
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")
    for worker in (services["worker-1"], services["worker-2"]):
        assert worker["stop_grace_period"] == "1h"
        assert worker["user"] != "0"
        assert worker["mem_limit"]
        assert worker["cap_drop"] == ["ALL"]


def test_the_kubernetes_example_refers_to_what_it_has():
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
    assert [document["kind"] for document in documents] == ["ConfigMap", "Deployment", "Job", "Deployment"]
    for document in documents[1:]:
        pod = document["spec"]["template"]["spec"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in (*pod["initContainers"], *pod["containers"]):
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            assert container["image"].rpartition(":")[2][0].isdigit()
            assert container["command"]
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            }
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["resources"]["limits"]["memory"]
            # A worker that is to end finishes its jobs; 30 seconds are the default.
            assert "worker" not in container["command"] or pod["terminationGracePeriodSeconds"] >= 3600
            assert {"secretRef": {"name": "detent"}} in container["envFrom"]
    for deployment in (documents[1]["spec"], documents[3]["spec"]):
        assert deployment["selector"]["matchLabels"] == deployment["template"]["metadata"]["labels"]


@pytest.mark.parametrize("name", ["compose.yaml", "kubernetes.yaml"])
def test_commands_exist(name):
    found = [command for document in yaml.safe_load_all((DEPLOY / name).read_text()) for command in commands(document)]
    assert found
    for _, verb, *options in found:
        assert verb in VERBS
        help_text = (DEPLOY.parent / "src/detent/cli/commands" / f"{verb}.py").read_text()
        assert all(f'"{option}"' in help_text for option in options if option.startswith("--"))
