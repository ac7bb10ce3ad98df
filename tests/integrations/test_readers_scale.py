"""Scores on other scales, and names that nearly pair."""

from __future__ import annotations

from pathlib import Path

import pytest

from falter.cli.app import invoke
from falter.engine.analyze import analyze_files
from falter.readers.cells import MISSING, SCORED, Scale, scale_of
from falter.readers.results import read_results
from falter.records.errors import InvalidValue, TaskError

Capture = pytest.CaptureFixture[str]


def write(folder: Path, text: str, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def falter_cli(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = invoke(arguments)
    out, err = capsys.readouterr()
    return code, out, err


# --- scales ----------------------------------------------------------------------------------

BARE = "id,condition,score\na,x,87.5\na,y,60\nb,x,0\nb,y,\n"


def test_bare_numbers_ask_for_a_scale_before_anything_is_computed(tmp_path: Path) -> None:
    """The message names the score, its item and the range; the hint says what to give."""
    path = write(tmp_path, BARE)
    with pytest.raises(TaskError, match=r"item 'a' .* is 87\.5, outside 0 to 1") as bad:
        analyze_files([path])
    assert "between 0 and 87.5" in bad.value.message
    assert "--scale 100" in str(bad.value.hint)


def test_a_scale_turns_scores_into_shares_of_it(tmp_path: Path) -> None:
    """87.5 of 100 is .875; 4 on a scale from 1 to 5 is .75; what is absent stays absent."""
    cells = read_results([write(tmp_path, BARE)], scale=Scale(0.0, 100.0))
    assert cells.value.tolist()[:3] == [0.875, 0.6, 0.0]
    assert cells.outcome.tolist() == [SCORED, SCORED, SCORED, MISSING]
    assert any("scale from 0 to 100" in note for note in cells.notes)
    rated = write(tmp_path, "id,score\na,4\nb,1\nc,5\n", "rated.csv")
    assert read_results([rated], scale=Scale(1.0, 5.0)).value.tolist() == [0.75, 0.0, 1.0]


def test_a_negative_score_asks_for_a_scale_too(tmp_path: Path) -> None:
    path = write(tmp_path, "id,score\na,-3\nb,0.5\n")
    with pytest.raises(TaskError, match="is -3, outside 0 to 1"):
        read_results([path])
    assert read_results([path], scale=Scale(-5.0, 5.0)).value.tolist() == [0.2, 0.55]


def test_an_overflow_is_refused_and_not_put_on_a_scale(tmp_path: Path) -> None:
    """1e308 is no score; the hint asks for the file to be corrected."""
    path = write(tmp_path, "id,score\na,1e308\nb,0\n")
    with pytest.raises(TaskError, match="1e\\+308") as bad:
        read_results([path])
    assert "or choose another score" in str(bad.value.hint)
    with pytest.raises(InvalidValue):
        scale_of("1e308")


def test_what_lies_outside_the_given_scale_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="outside 0 to 50, as --scale says"):
        read_results([write(tmp_path, BARE)], scale=Scale(0.0, 50.0))


def test_what_rounding_adds_to_one_is_one(tmp_path: Path) -> None:
    cells = read_results([write(tmp_path, "id,score\na,1.0000000000000002\nb,0\n")])
    assert cells.value.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("text", ["", "hundred", "5,1", "3,3", "1,2,3", "nan", "0", "-1"])
def test_a_scale_that_is_none_is_named(text: str) -> None:
    with pytest.raises(InvalidValue, match="--scale is"):
        scale_of(text)
    assert scale_of("100") == Scale(0.0, 100.0)
    assert scale_of("-1, 1") == Scale(-1.0, 1.0)


def test_the_command_takes_a_scale(capsys: Capture, tmp_path: Path) -> None:
    rows = [f"{n},{how},{70 + n % 7 - 5 * (how == 'b')}" for n in range(30) for how in "ab"]
    path = str(write(tmp_path, "\n".join(["item,condition,score", *rows])))
    code, out, err = falter_cli(capsys, "analyze", path, "--baseline", "a")
    assert (code, out) == (2, "") and "--scale 100" in err
    code, out, err = falter_cli(capsys, "analyze", path, "--baseline", "a", "--scale", "100")
    assert code == 0, err
    assert "72." in out
    found = falter_cli(capsys, "power", "--drop", "2", "--from", path, "--baseline", "a",
                       "--discordance", "0.1", "--scale", "100")  # fmt: skip
    assert found[0] == 0, found[2]


# --- names that nearly pair ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id,condition,score\na,typos,1\nb,typos ,0\n", "'typos' and 'typos '"),
        ("id,typos, typos\na,1,0\n", "'typos' and ' typos'"),
        ("id,model,condition,score\na,m,x,1\na,m  ,y,0\n", "'m' and 'm  '"),
        ("id,condition,score\n12,x,1\n12.0,y,0\n", "'12' and '12.0'"),
        ("id,condition,score\nq 1,x,1\nq  1,y,0\n", "'q 1' and 'q  1'"),
    ],
)
def test_names_that_nearly_pair_are_an_error_that_names_them(
    tmp_path: Path, text: str, names: str
) -> None:
    with pytest.raises(TaskError, match="differ only in white space") as bad:
        read_results([write(tmp_path, text)])
    assert names in bad.value.message


def test_items_of_two_files_that_nearly_pair_are_an_error(tmp_path: Path) -> None:
    """A spreadsheet program turned the numbers of one file into `1.0`."""
    one = write(tmp_path, "task,id,condition,score\nt,1,x,1\nt,2,x,0\n", "one.csv")
    two = write(tmp_path, "task,id,condition,score\nt,1.0,y,1\nt,2.0,y,0\n", "two.csv")
    with pytest.raises(TaskError, match="2 pairs of items differ"):
        read_results([one, two])


def test_a_difference_in_case_is_a_note(tmp_path: Path) -> None:
    """Upper case may be the perturbation."""
    cells = read_results([write(tmp_path, "id,original,ORIGINAL\na,1,0\nb,1,1\n")])
    assert cells.condition.names == ("original", "ORIGINAL")
    assert any("'original' and 'ORIGINAL'" in note for note in cells.notes)


def test_items_that_stand_side_by_side_are_two(tmp_path: Path) -> None:
    """Both have every condition, so nothing is missing and nothing is said."""
    text = "id,condition,score\n1,x,1\n1.0,x,0\n1,y,1\n1.0,y,0\nA,x,1\na,x,1\n"
    cells = read_results([write(tmp_path, text)])
    assert len(cells) == 6
    assert not any("differ only" in note for note in cells.notes)
