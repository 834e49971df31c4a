"""The tokens of one turn, from the several places in which agents tell them."""

from typing import Any

from detent.clients.acp.agents import Live
from detent.clients.dialect import fields_of, text_of
from detent.clients.usage import amount, count
from detent.core.session.phase_state import Tokens

_CURRENCY = "USD"


class TurnUsage:
    """The tokens of a turn, which may have several prompts. No two figures for the same tokens are added up."""

    def __init__(self, live: Live, *, is_new: bool = True) -> None:
        """`is_new`: the conversation begins with this turn, so all its cost is of this turn."""
        self._live, self._is_new, self._cost = live, is_new, 0.0
        #: The prompts that have ended.
        self._ended = Tokens()
        self._has_output = False
        self._requests = Tokens()
        self._messages: dict[str, Tokens] = {}
        self._result = Tokens()
        #: The client's own record, from the beginning of the turn.
        self.recorded = Tokens()

    def total(self) -> Tokens:
        reported = self._ended + _largest(sum(self._messages.values(), Tokens()), self._result, self._requests)
        largest = _largest(self.recorded, reported)
        return Tokens(input=largest.input, output=largest.output, cost=max(reported.cost, self._cost))

    def output_began(self) -> None:
        """A restored conversation tells its last usage once more before the first output."""
        self._has_output = True

    def updated(self, update: dict[str, Any]) -> None:
        """A `usage_update`: the size of the context, which is what one request read and wrote."""
        if self._live is Live.REQUESTS and self._has_output:
            self._requests += Tokens(input=count(update.get("used")))
        cost = fields_of(update.get("cost"))
        if self._is_new and cost.get("currency") == _CURRENCY:
            self._cost = amount(cost.get("amount"))

    def sdk_message(self, message: dict[str, Any]) -> None:
        """A message of the Claude SDK: of the agent or of a sub-agent of it, or the result of a prompt."""
        if message.get("type") == "result":
            by_model = fields_of(message.get("model_usage_since_last_result"))
            self._result = sum((_of_model(fields_of(each)) for each in by_model.values()), Tokens())
            return
        inner = fields_of(message.get("message"))
        if usage := fields_of(inner.get("usage")):
            self._messages[text_of(inner.get("id"))] = _of_message(usage)

    def prompt_ended(self, result: dict[str, Any]) -> None:
        """The answer to a prompt. By model it has sub-agents and side requests too, which the plain usage has not."""
        quota = fields_of(fields_of(result.get("_meta")).get("quota"))
        listed = quota.get("model_usage")
        models = [fields_of(fields_of(each).get("token_count")) for each in listed] if isinstance(listed, list) else []
        by_model = sum((_of_counts(each) for each in models), Tokens())
        messages = sum(self._messages.values(), Tokens())
        largest = _largest(_of_counts(fields_of(result.get("usage"))), by_model, messages, self._result, self._requests)
        self._ended += Tokens(input=largest.input, output=largest.output, cost=self._result.cost)
        self._requests, self._messages, self._result = Tokens(), {}, Tokens()


def _of_counts(counts: dict[str, Any]) -> Tokens:
    """Without a total the input is as told. With one, the input is all that is not output: cached tokens too."""
    output = count(counts.get("outputTokens", counts.get("output_tokens")))
    total = count(counts.get("totalTokens"))
    return Tokens(
        input=total - output if total >= output and total else count(counts.get("input_tokens")), output=output
    )


def _of_message(usage: dict[str, Any]) -> Tokens:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return Tokens(input=sum(count(usage.get(name)) for name in names), output=count(usage.get("output_tokens")))


def _of_model(usage: dict[str, Any]) -> Tokens:
    names = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return Tokens(
        input=sum(count(usage.get(name)) for name in names),
        output=count(usage.get("outputTokens")),
        cost=amount(usage.get("costUSD")),
    )


def _largest(*figures: Tokens) -> Tokens:
    return max(figures, key=_size)


def _size(tokens: Tokens) -> int:
    return tokens.input + tokens.output
