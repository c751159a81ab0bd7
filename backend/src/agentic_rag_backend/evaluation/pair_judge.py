"""A language model compares two configurations' answers to a question, in both orders. Only agreeing orders prefer an answer.

Models prefer the first or the second of two texts whatever they say (Zheng et al., "Judging LLM-as-a-judge", 2023, section 3.3).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.evaluation import EvaluationCase, PairChoice, PairVerdict
from agentic_rag_backend.domain.usage import Usage, UsageAccount
from agentic_rag_backend.errors import AgenticRagError, ModelReplyInvalid
from agentic_rag_backend.jobs.base import is_transient
from agentic_rag_backend.models.llm.base import LanguageModel, Message, ModelRequest, object_of, one_of
from agentic_rag_backend.prompts import built_in, fence

PROMPT = "answer_comparison"
MAX_ANSWER_CHARACTERS = 8_000
"""Characters of an answer that the judge reads. Longer answers are cut."""
CALLS = 2
"""Calls of one comparison: one for each order."""
_REPLY_TOKENS = 100
_FRAME_TOKENS = 500
"""Tokens of a prompt without the answers, for estimates."""
_FIRST, _SECOND, _EQUAL = "1", "2", "equal"
_SCHEMA = object_of({"better": one_of([_FIRST, _SECOND, _EQUAL])})


@dataclass(frozen=True, slots=True)
class PairJudge:
    """Compares pairs of answers.

    Args:
        model: the language model; it must be generative.
        name: the model's name.
    """

    model: LanguageModel
    name: str

    @property
    def prompt_id(self) -> str:
        """Name and version of the prompt."""
        return built_in(PROMPT).id

    async def compare(self, case: EvaluationCase, names: tuple[str, str], texts: tuple[str, str]) -> PairVerdict:
        """Return the verdict on a baseline's answer (first) and another configuration's answer. Equal texts need no call.

        Raises:
            ModelUnavailable: the model does not answer now.
        """
        verdict = PairVerdict(
            case_id=case.id, baseline=names[0], configuration=names[1], choices=(PairChoice.EQUAL, PairChoice.EQUAL)
        )
        if texts[0] == texts[1]:
            return replace(verdict, asked=False)
        accounts = (UsageAccount(), UsageAccount())
        orders = (
            (texts, (PairChoice.BASELINE, PairChoice.CONFIGURATION)),
            (texts[::-1], (PairChoice.CONFIGURATION, PairChoice.BASELINE)),
        )
        replies = await asyncio.gather(
            *(self._ask(case, order, account) for (order, _), account in zip(orders, accounts, strict=True)),
            return_exceptions=True,
        )
        usage = sum((account.usage for account in accounts), Usage())
        choices: list[PairChoice | None] = []
        error: str | None = None
        for reply, (_, choices_of_order) in zip(replies, orders, strict=True):
            if isinstance(reply, BaseException):
                error = _code_of(reply)
                choices.append(None)
            else:
                choices.append({_FIRST: choices_of_order[0], _SECOND: choices_of_order[1]}.get(reply, PairChoice.EQUAL))
        return replace(verdict, choices=(choices[0], choices[1]), error=error).with_usage(usage)

    async def _ask(self, case: EvaluationCase, texts: tuple[str, str], account: UsageAccount) -> str:
        answers = "\n\n".join(
            fence("answer", text[:MAX_ANSWER_CHARACTERS], attributes={"number": number}) for number, text in enumerate(texts, 1)
        )
        expected = [text for text in (case.expected_answer, *case.must_say) if text]
        if not case.answerable:
            expected = ["The documents do not answer the question."]
        prompt = built_in(PROMPT)
        system, user = prompt.render(
            {
                "question": fence("question", case.question),
                "expected": fence("points", "\n".join(expected)) if expected else "",
                "answers": answers,
            }
        )
        request = ModelRequest(
            prompt=prompt.id,
            messages=(Message("system", system), Message("user", user)),
            schema=_SCHEMA,
            model=self.name,
            max_tokens=_REPLY_TOKENS,
            account=account,
        )
        better = ((await self.model.complete(request)).parsed or {}).get("better")
        if better not in (_FIRST, _SECOND, _EQUAL):
            raise ModelReplyInvalid("the reply names no better answer")
        return str(better)


def largest_comparison(answer_tokens: int) -> Usage:
    """Return the tokens of a comparison of two answers of the largest size, without a cost."""
    return Usage(CALLS * (_FRAME_TOKENS + 2 * answer_tokens), CALLS * _REPLY_TOKENS, calls=CALLS)


def _code_of(error: BaseException) -> str:
    """Return the code of an error that a later attempt would repeat. Raise any other error."""
    if isinstance(error, ModelReplyInvalid) or (isinstance(error, AgenticRagError) and not is_transient(error)):
        return error.code
    raise error
