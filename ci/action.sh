#!/usr/bin/env bash
# The script of the GitHub Action: installs Detent, gets the base branch, and checks the record.
set -euo pipefail

source_dir=${GITHUB_ACTION_PATH:-$(cd "$(dirname "$0")/.." && pwd)}
scratch=${RUNNER_TEMP:-$(mktemp -d)}
detent=${DETENT_PROGRAM:-}
if [ -z "$detent" ]; then
  python3 -m venv "$scratch/detent"
  "$scratch/detent/bin/python" -m pip install --quiet --disable-pip-version-check "${DETENT_INSTALL:-$source_dir}[hardware]"
  detent=$scratch/detent/bin/detent
fi

cd "${DETENT_DIRECTORY:-.}"
arguments=(--tree "${DETENT_TREE:-HEAD}" --assurance "${DETENT_ASSURANCE:-attended}")
if [ -n "${DETENT_BASE:-}" ]; then
  # Checkouts of CI are shallow: the base branch is fetched, unless its commit is there.
  if ! base=$(git rev-parse --verify --quiet "$DETENT_BASE^{commit}"); then
    git fetch --quiet --depth=1 origin -- "$DETENT_BASE"
    base=$(git rev-parse --verify "FETCH_HEAD^{commit}")
  fi
  arguments+=(--base "$base")
fi
[ "${DETENT_GATES:-true}" = true ] || arguments+=(--no-gates)
[ -z "${DETENT_CODE_QUALITY:-}" ] || arguments+=(--code-quality "$DETENT_CODE_QUALITY")
exec "$detent" ci check "${arguments[@]}"
