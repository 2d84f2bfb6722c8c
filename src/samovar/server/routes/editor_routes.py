"""Routes for editors: SQL checked by Spark's parser, Spark's functions, remarks on code, and trials on a few rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from samovar.errors import OutsideWorkspace, SamovarError
from samovar.graph.document import load
from samovar.graph.lint import remarks
from samovar.server import answers
from samovar.server.documents.confinement import confine
from samovar.server.documents.sql_reach import check_sql as confined
from samovar.server.error_answers import problem_data
from samovar.server.json_values import row_data
from samovar.server.services import Parts, The
from samovar.text import quote_name

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["editing"])


class ColumnOf(BaseModel):
    """A column and its type, in Spark's words."""

    name: str = Field(max_length=1000)
    type: str = Field(max_length=20_000)


class Sql(BaseModel):
    """An expression over columns: a condition, a column or a sort key."""

    sql: str = Field(max_length=20_000)
    columns: list[ColumnOf] = Field(default_factory=list, max_length=2000)
    form: Literal["expression", "condition", "sort"] = "expression"


class Code(BaseModel):
    """The code of a Python operator."""

    code: str = Field(max_length=1_000_000)


@router.post("/lint", response_model=answers.LintData)
def lint(given: Code) -> dict[str, Any]:
    """Remarks on code, without running it: `line`, `column`, `message`."""
    return {
        "problems": [{"line": r.line, "column": r.column, "message": r.message} for r in remarks(given.code)]
    }


@router.get("/sql/functions", response_model=list[answers.SqlFunctionData])
def functions(the: The) -> list[dict[str, str]]:
    """The functions of Spark SQL by name; none before Spark is up."""
    return _functions(the.engine.session()) if the.engine.ready else []


@lru_cache(maxsize=1)
def _functions(session: Any) -> list[dict[str, str]]:
    names = [str(row[0]) for row in session.sql("SHOW FUNCTIONS").collect()]
    return [{"name": name} for name in names if name.isidentifier()]


@router.post("/sql", response_model=answers.SqlVerdictData)
def check_sql(the: The, given: Sql) -> dict[str, Any]:
    """What is wrong with an expression (`problem`: `message`, `hint`), or its `type`; neither before Spark is up."""
    if not the.engine.ready or not given.sql.strip():
        return {"problem": None, "type": None}
    try:
        confined(given.sql)
    except OutsideWorkspace as error:
        return {"problem": {"message": error.message, "hint": error.hint}, "type": None}
    return _checked(the.engine.session(), given)


def _checked(spark: Any, given: Sql) -> dict[str, Any]:
    from pyspark.errors import PySparkException

    from samovar.compile.native import as_column, sort_column
    from samovar.compile.schema_problems import explain_problem

    try:
        columns = ", ".join(f"{quote_name(c.name)} {c.type}" for c in given.columns)
        frame = spark.createDataFrame([], columns) if columns else spark.range(0).select()
    except (PySparkException, ValueError):
        return {
            "problem": None,
            "type": None,
        }  # columns that do not exist are a problem of the operator before
    try:
        if given.form == "condition":
            kind = frame.filter(given.sql).schema and "boolean"
        elif given.form == "sort":
            kind = frame.orderBy(sort_column(given.sql)).schema and None
        else:
            fields = frame.select(as_column(given.sql)).schema.fields
            kind = fields[0].dataType.simpleString() if len(fields) == 1 else None
    except PySparkException as error:
        problem = explain_problem(spark, "", error, [frame])
        return {"problem": {"message": problem.message, "hint": problem.hint}, "type": None}
    return {"problem": None, "type": kind}


@router.post("/workflows/{id}/try/{operator}", response_model=answers.TrialData)
async def try_out(the: The, id: str, operator: str) -> dict[str, Any]:
    """Run an operator on the first ten rows that come to it: `given` on port 0, `rows` it gave, or an `error`."""
    with the.rooms.use(id) as room:
        document = room.read().document
    return await run_in_threadpool(_tried, the, document, operator)


def _tried(the: Parts, document: dict[str, Any], operator: str) -> dict[str, Any]:
    from samovar.runtime.trial import Trial, try_operator

    confine(document, the.workspace.files)
    flow = load(document, folder=the.workspace.files)
    try:
        trial = try_operator(flow, operator, spark=the.engine.session(), scratch=the.workspace.root)
    except SamovarError as error:
        trial = Trial(error=error)
    result = trial.result
    return {
        "given": [row_data(r) for r in trial.given[0].to_pylist()] if trial.given else [],
        "rows": [row_data(r) for r in result.slice(0, 100).to_pylist()] if result is not None else [],
        "columns": [{"name": f.name, "type": str(f.type)} for f in result.schema]
        if result is not None
        else [],
        "error": problem_data(trial.error) if trial.error is not None else None,
    }
