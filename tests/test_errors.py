"""Errors as they are shown: the operator is named, and once."""

from __future__ import annotations

from samovar.errors import SamovarError


def test_the_operator_is_named_also_when_its_name_is_part_of_a_word() -> None:
    error = SamovarError(
        "Expected a column of its input, got 'amout'.", operator="f", hint="Did you mean 'amount'?"
    )
    assert error.text == "Operator 'f': Expected a column of its input, got 'amout'."
    assert str(error) == error.text + "\nHint: Did you mean 'amount'?"


def test_an_operator_the_message_names_is_not_named_twice() -> None:
    assert SamovarError("Operator 'FE' raised.", operator="FE").text == "Operator 'FE' raised."
