"""A run's folder knows the rules that it began with."""

import pytest

from jaxzero.runs import process_coordination
from jaxzero.runs.rules_digest import same_rules


def test_other_rules_are_refused_until_the_file_is_removed(tmp_path):
    same_rules(tmp_path, "1a", begun=True)  # of a run that is older than the file
    same_rules(tmp_path, "1a", begun=True)
    with pytest.raises(ValueError, match=f"To continue anyway, remove {tmp_path}/rules."):
        same_rules(tmp_path, "2b", begun=True)
    assert (tmp_path / "rules").read_text() == "1a\n"
    (tmp_path / "rules").unlink()
    same_rules(tmp_path, "2b", begun=True)
    assert (tmp_path / "rules").read_text() == "2b\n"


def test_a_run_that_has_learned_nothing_takes_other_rules(tmp_path):
    same_rules(tmp_path, "1a", begun=False)
    same_rules(tmp_path, "2b", begun=False)
    with pytest.raises(ValueError, match="random games differ"):
        same_rules(tmp_path, "1a", begun=True)
    (tmp_path / "rules").write_bytes(b"")  # damaged
    same_rules(tmp_path, "1a", begun=True)


def test_processes_with_different_rules_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(process_coordination, "gathered", lambda digest: [digest, "2b"])
    with pytest.raises(ValueError, match="different rules: give all of them the same file"):
        same_rules(tmp_path, "1a", begun=False)
    assert not (tmp_path / "rules").exists()
