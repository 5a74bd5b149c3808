"""Runs after all the others."""

import pytest


def test_every_verb_was_reached(request, reached):
    verbs, by = reached
    files = {item.path.name for item in request.session.items}
    if request.config.option.keyword or len(files) < 8:
        pytest.skip("not all tests ran")
    assert len(verbs.names) > 45
    assert [name for name in sorted(verbs.names) if name not in by] == []
