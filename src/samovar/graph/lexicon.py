"""A small English lexicon of feelings, and the SQL that scores a text with it.

Words have weights from -4 to 4. A negation up to three words before one turns it around and weakens it, a strengthening
word just before one adds to it. The sum is brought between -1 and 1. Everything is one SQL expression over one column.
"""

from __future__ import annotations

from functools import cache

__all__ = ["NEGATIONS", "STRONGER", "WEIGHTS", "sentiment_score"]

_LISTS: dict[float, str] = {
    3.0: """amazing awesome brilliant excellent exceptional fabulous fantastic flawless incredible love loved
        loves loving magnificent marvelous masterpiece outstanding perfect perfectly phenomenal spectacular
        splendid stunning superb terrific thrilled wonderful wonderfully best""",
    2.0: """admire adore beautiful beautifully charming cheerful delicious delight delighted delightful easy
        elegant enjoy enjoyable enjoyed enjoying excited exciting favorite favourite friendly fun funny glad
        good gorgeous great grateful happy happily impressed impressive inspiring joy kind lovely lucky nice
        pleasant pleased pleasure proud recommend recommended refreshing reliable satisfied smooth success
        successful sweet thank thanks thankful victory win winner winning won wow yay""",
    1.0: """agree alright better bright calm clean clear comfortable cool fair fast fine fresh help helped
        helpful helps hope hopeful improve improved improves improvement interesting like liked likes okay
        positive quick safe secure simple solid strong support useful warm welcome well works worth""",
    -1.0: """afraid alone boring bother bothered cold complain complained confused confusing costly difficult
        dull expensive fail flaw flawed hard issue issues late lack lacking lost mediocre mess messy miss
        missed missing negative odd problem problems rough sad sadly scared sick slow sorry strange stuck
        tired trouble uncomfortable unclear unfortunately unhappy weak weird worried worry""",
    -2.0: """angry annoyed annoying bad badly blame broke broken bug bugs buggy careless cheap crap crash
        crashed crashes cry damage damaged delay delayed dirty disappoint disappointed disappointing
        disappointment dislike disliked fake failed fails failing failure fear frustrated frustrating
        frustration hurt ignored junk lazy lie lied lies lose loser losing mad mistake nasty noisy overpriced
        pain painful poor poorly refund regret rude stupid suck sucks ugly unfair unusable useless waste
        wasted worse wrong""",
    -3.0: """abysmal appalling atrocious awful awfully disaster disgusting dreadful evil garbage hate hated
        hates hating hideous horrible horribly horrific nightmare pathetic terrible terribly trash worst
        worthless""",
}

WEIGHTS: dict[str, float] = {word: weight for weight, words in _LISTS.items() for word in words.split()}
"""What a word counts."""

_NEGATIONS = """not no never none nothing neither nor without hardly barely cannot cant can't dont don't didnt didn't
    doesnt doesn't isnt isn't wasnt wasn't arent aren't werent weren't wont won't wouldnt wouldn't couldnt
    couldn't shouldnt shouldn't"""
NEGATIONS = tuple(_NEGATIONS.split())
"""Words that turn what follows around."""

_STRONGER = """absolutely completely deeply especially extremely highly incredibly really remarkably so super totally
    truly utterly very"""
STRONGER = tuple(_STRONGER.split())
"""Words that strengthen what follows."""


def _list(words: tuple[str, ...]) -> str:
    return "split('" + " ".join(words).replace("'", "\\'") + "', ' ')"


@cache
def _weights() -> str:
    names = _list(tuple(WEIGHTS))
    numbers = ", ".join(f"{weight}D" for weight in WEIGHTS.values())
    return f"map_from_arrays({names}, array({numbers}))"


def sentiment_score(column: str) -> str:
    """SQL for the score of a text column (given as SQL), from -1 to 1; null for null."""
    turned = " OR ".join(
        f"coalesce(array_contains({_list(NEGATIONS)}, get(ws, i - {n})), false)" for n in (1, 2, 3)
    )
    stronger = f"coalesce(array_contains({_list(STRONGER)}, get(ws, i - 1)), false)"
    weight = f"coalesce(try_element_at({_weights()}, w), 0D)"
    # a word's weight is looked up first, so that its neighbours are looked at for words with a feeling only
    one = (
        f"element_at(transform(array({weight}), v -> CASE WHEN v = 0D THEN 0D ELSE "
        f"(v + CASE WHEN {stronger} THEN sign(v) * 0.8D ELSE 0D END) "
        f"* CASE WHEN {turned} THEN -0.7D ELSE 1D END END), 1)"
    )
    total = f"aggregate(transform(ws, (w, i) -> {one}), 0D, (a, b) -> a + b)"
    words = f"regexp_extract_all(lower({column}), '[\\\\p{{L}}\\']+', 0)"
    sum_once = f"element_at(transform(array({words}), ws -> {total}), 1)"
    return f"element_at(transform(array({sum_once}), s -> s / sqrt(s * s + 15D)), 1)"
