"""Chinese and Japanese sentences that are denied, and right ones in another order."""

from __future__ import annotations

from sample_passages import passage_of

from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier

CHINESE = "王明在杭州创立了华兴公司，投资3亿元。李雷在2014年的比赛中击败了韩梅梅。该厂继续生产汽车。"
JAPANESE = "田中一郎は1990年に東京で会社を設立し、5億円を投資した。佐藤は鈴木を選挙で破った。工場は車を生産している。"
JAPANESE_NEWS = "新しい灯台は2027年に開業する可能性がある。田中は決勝で鈴木を破った。博物館は月曜日に休館する。"


def reason_of(text: str, claim: str) -> str | None:
    held = passage_of(text)
    return LexicalVerifier([held]).check(Claim(claim, (1,))).reason


def test_a_changed_sentence_is_dropped() -> None:
    for text, claim, reason in [
        (CHINESE, "该厂停止生产汽车。", "negated"),
        (CHINESE, "华兴公司投资4亿元。", "number"),
        (JAPANESE, "6億円を投資した。", "number"),
        (JAPANESE, "工場は車の生産を停止している。", "negated"),
        (JAPANESE_NEWS, "鈴木は決勝で田中を破った。", "roles"),
        (JAPANESE_NEWS, "佐藤は決勝で鈴木を破った。", "roles"),
        (JAPANESE_NEWS, "博物館は火曜日に休館する。", "number"),
        (JAPANESE_NEWS, "新しい灯台は2027年に開業する。", "modality"),
    ]:
        assert reason_of(text, claim) == reason


def test_a_right_sentence_is_kept() -> None:
    for text, claim in [
        (CHINESE, "王明在杭州创立了华兴公司。"),
        (CHINESE, "华兴公司由王明在杭州创立。"),
        (CHINESE, "王明投资了3亿元。"),
        (CHINESE, "2014年，李雷在比赛中击败了韩梅梅。"),
        (CHINESE, "韩梅梅在2014年的比赛中被李雷击败。"),
        (CHINESE, "该厂生产汽车。"),
        ("首都是北京，人口两千万。", "北京是首都，人口两千万。"),
        ("从那以后，磨坊停止运营。", "磨坊从那以后不再运营。"),
        (JAPANESE, "1990年に田中一郎は東京で会社を設立した。"),
        (JAPANESE, "会社は1990年に東京で田中一郎が設立した。"),
        (JAPANESE, "選挙で佐藤は鈴木を破った。"),
        (JAPANESE, "鈴木は選挙で佐藤に破られた。"),
        (JAPANESE, "工場は車を生産している。"),
        (JAPANESE_NEWS, "決勝で田中は鈴木を破った。"),
        (JAPANESE_NEWS, "月曜日に博物館は休館する。"),
        (JAPANESE_NEWS, "新しい灯台は2027年に開業する可能性がある。"),
    ]:
        assert reason_of(text, claim) is None
