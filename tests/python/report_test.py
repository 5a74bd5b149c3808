"""cistern.report(): the arguments of the command, its messages, and its failures. The command is made up."""

import json
import sys

import cistern
import pytest

MODULE = sys.modules["cistern.report"]
COMMAND = f"""#!{sys.executable}
import json, sys
if "refused" in sys.argv[-1]:
    sys.exit("cistern: refused: no such file")
print("cistern: note: the file lacks times", file=sys.stderr) if "lacks" in sys.argv[-1] else None
json.dump(sys.argv[1:], open(sys.argv[3].partition("=")[2], "w"))
"""


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Calls report() with a path in the folder; the arguments that the command got."""
    command = tmp_path / "cistern"
    command.write_text(COMMAND)
    command.chmod(0o755)
    monkeypatch.setattr(MODULE, "_command", lambda: str(command))

    def call(files, **how):
        cistern.report(files, tmp_path / "page.html", **how)
        return [each.replace(str(tmp_path), "AT") for each in json.loads((tmp_path / "page.html").read_text())]

    return call


def test_one_file_is_drawn(drawn):
    assert drawn("a.trace") == ["report", "--format=html", "--output=AT/page.html", "a.trace"]
    assert drawn(b"-a.trace")[-1] == "./-a.trace"


def test_two_files_and_every_argument(drawn):
    assert drawn(["a", "b"], format="json", at=["12.5s", "step 3"], policies=["torch-rules"], gpu=1, capacity=5,
                 max_unpacked="1GiB") == [
        "report", "--format=json", "--output=AT/page.html", "--at=12.5s", "--at=step 3", "--policy=torch-rules",
        "--capacity=5B", "--max-unpacked=1GiB", "--gpu=1", "a", "b"]


def test_what_the_command_says_is_a_warning(drawn):
    with pytest.warns(UserWarning, match="^the file lacks times$"):
        drawn("lacks")


def test_a_refusal_is_an_error(drawn):
    with pytest.raises(cistern.ReportError, match="refused: no such file") as raised:
        drawn("refused")
    assert isinstance(raised.value, RuntimeError) and isinstance(raised.value, cistern.CisternError)


@pytest.mark.parametrize("how", [{"at": "12.5s"}, {"policies": "torch-rules"}, {"gpu": "1"}, {"format": 3}])
def test_a_wrong_type_is_named(drawn, how):
    with pytest.raises(TypeError, match=next(iter(how))):
        drawn("a", **how)
    with pytest.raises(TypeError, match="files"):
        drawn(3)
