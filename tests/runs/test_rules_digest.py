"""A run's folder knows the rules that it began with."""

import pytest

from jaxzero.runs.rules_digest import same_rules


def test_other_rules_are_refused_until_the_file_is_removed(tmp_path):
    same_rules(tmp_path, "1a")
    same_rules(tmp_path, "1a")
    with pytest.raises(ValueError, match=f"To go on all the same, remove {tmp_path}/rules."):
        same_rules(tmp_path, "2b")
    assert (tmp_path / "rules").read_text() == "1a\n"
    (tmp_path / "rules").unlink()
    same_rules(tmp_path, "2b")
    assert (tmp_path / "rules").read_text() == "2b\n"
