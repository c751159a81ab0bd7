"""Similarity of texts by any encoder, relative to unrelated sentences.

The cosines of one encoder are between .7 and .95, those of another between 0 and .8, and texts in one language are nearer than in
two. So a cosine is compared with those of sentences about everyday matters in the language of the passages (a cohort, as in the
score normalisation of speaker verification: Auckenthaler, Carey & Lloyd-Thomas 2000).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agentic_rag_backend.errors import ModelReplyInvalid
from agentic_rag_backend.models.embedding.base import TextEncoder, Vectors

COHORT: Mapping[str, tuple[str, ...]] = {
    "en": (
        "It rained all day and the wind was cold.",
        "Fry the onions in a little oil and add the rice.",
        "The team lost the match in the last minute.",
        "The bank raised its interest rates again.",
        "Take one tablet in the morning after breakfast.",
        "The court will hear the case next week.",
        "We missed the train and waited at the station.",
        "The computer would not start after the update.",
        "She plays the violin in the evening.",
        "My grandmother has two sons and a daughter.",
        "The cat sleeps under the kitchen table.",
        "Light travels faster than sound.",
    ),
    "de": (
        "Es regnete den ganzen Tag, und der Wind war kalt.",
        "Die Zwiebeln in etwas Öl braten und den Reis dazugeben.",
        "Die Mannschaft verlor das Spiel in der letzten Minute.",
        "Die Bank hat die Zinsen wieder erhöht.",
        "Nehmen Sie morgens nach dem Frühstück eine Tablette.",
        "Das Gericht verhandelt den Fall in der nächsten Woche.",
        "Wir verpassten den Zug und warteten am Bahnhof.",
        "Der Computer ließ sich nach der Aktualisierung nicht starten.",
        "Sie spielt abends Geige.",
        "Meine Großmutter hat zwei Söhne und eine Tochter.",
        "Die Katze schläft unter dem Küchentisch.",
        "Licht ist schneller als Schall.",
    ),
    "fr": (
        "Il a plu toute la journée et le vent était froid.",
        "Faites revenir les oignons dans un peu d'huile et ajoutez le riz.",
        "L'équipe a perdu le match à la dernière minute.",
        "La banque a de nouveau relevé ses taux.",
        "Prenez un comprimé le matin après le petit déjeuner.",
        "Le tribunal examinera l'affaire la semaine prochaine.",
        "Nous avons raté le train et attendu à la gare.",
        "L'ordinateur ne démarrait plus après la mise à jour.",
        "Elle joue du violon le soir.",
        "Ma grand-mère a deux fils et une fille.",
        "Le chat dort sous la table de la cuisine.",
        "La lumière est plus rapide que le son.",
    ),
    "zh": (
        "下了一整天的雨，风很冷。",
        "用少许油把洋葱炒香，再加入米饭。",
        "球队在最后一分钟输掉了比赛。",
        "银行再次提高了利率。",
        "早饭后服用一片药。",
        "法院下周将审理此案。",
        "我们错过了火车，在车站等候。",
        "更新之后电脑无法启动。",
        "她晚上拉小提琴。",
        "我的祖母有两个儿子和一个女儿。",
        "猫睡在厨房的桌子下面。",
        "光比声音传播得快。",
    ),
}
"""Everyday sentences by language. The sentences of all languages stand for other languages."""


class RelativeSimilarity:
    """Compares cosines with those of the cohort, which is embedded once for each language."""

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self._cohorts: dict[str, Vectors] = {}
        self._loading = asyncio.Lock()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, see `TextEncoder.embed`. The rows have length 1, whatever the encoder returns.

        Raises:
            ModelUnavailable: the encoder did not answer.
            ModelReplyInvalid: it returned values that are not finite, or not one row for each text.
        """
        vectors = np.asarray(await self._encoder.embed(texts), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ModelReplyInvalid(f"the embedder returned vectors of shape {vectors.shape} for {len(texts)} texts")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            raise ModelReplyInvalid("the embedder returned a vector whose values are not finite")
        result: Vectors = vectors / np.maximum(lengths, np.float32(1e-12))
        return result

    async def cohort(self, language: str | None) -> Vectors:
        """Return the vectors of the sentences in a language.

        Raises:
            ModelUnavailable: the encoder did not answer, or not with finite vectors.
        """
        code = language if language is not None and language in COHORT else ""
        async with self._loading:
            if code not in self._cohorts:
                sentences = COHORT[code] if code else tuple(sentence for group in COHORT.values() for sentence in group)
                self._cohorts[code] = await self.embed(sentences)
            return self._cohorts[code]


def relative_to(mean: Any, cosine: Any) -> Any:
    """Return the place of a cosine, or of an array of them, between the mean of unrelated texts (0) and 1 (1)."""
    return (cosine - mean) / np.maximum(1e-6, 1.0 - mean)
