"""What the OpenAPI description promises: requests made from it by schemathesis get no 5xx."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.server.support import SMALL, TOKEN, Served

schemathesis = pytest.importorskip("schemathesis")

STARTS = ("/run", "/fork", "/try/{operator}")
"""Routes that start work on Spark; what they do with workflows that are there is tested elsewhere."""
KNOWN = {"id": "target", "operator": "large"}
EXAMPLES = 25


def failures(operation: Any, url: str) -> list[str]:
    """Answers of 500 and above to requests made up for one route; every other one names what is there."""
    found: list[str] = []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        places = case.path_parameters or {}
        for name in KNOWN.keys() & places.keys():
            if len(str(places[name])) % 2 and not operation.path.endswith(STARTS):
                places[name] = KNOWN[name]
        answer = case.call(base_url=url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60)
        if answer.status_code >= 500:
            found.append(f"{operation.method} {operation.path}: {answer.status_code} {answer.text[:300]}")

    ask()
    return found


@pytest.mark.slow
def test_no_request_made_from_the_description_fails_in_the_server(engine_server: Served) -> None:
    engine_server.json("POST", "/api/workflows", json={"name": "target", "document": SMALL})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # schemathesis warns of what it leaves out
        schema = schemathesis.openapi.from_dict(engine_server.json("GET", "/openapi.json"))
        operations = [o.ok() for o in schema.get_all_operations()]
        assert len(operations) >= 30
        assert [f for operation in operations for f in failures(operation, engine_server.url)] == []
