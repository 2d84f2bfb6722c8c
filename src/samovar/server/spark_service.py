"""The one Spark session of the server: started when it is first needed, or warmed up in the background.

A session that nobody used for a while can be stopped (`rest`): Spark and its Java process end, which frees their
memory. The next request for the session starts it again, which takes seconds.

The session has the settings that confine SQL (sql_reach.py). A session that the caller brought has them too, and gets
its former settings back at the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from samovar.server.documents.sql_reach import SESSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Engine"]


class Engine:
    """Returns the session, the same to all callers. Threads wait while it starts."""

    def __init__(
        self,
        master: str | None = None,
        conf: Mapping[str, Any] | None = None,
        session: SparkSession | None = None,
    ) -> None:
        self._master = master
        self._conf = dict(conf or {})
        self._session = session
        self._own = session is None
        self._lock = threading.Lock()
        self._used = time.monotonic()
        self._before = _confined(session) if session is not None else {}

    @property
    def idle(self) -> float:
        """Seconds since the session was last used; 0 while there is none, or where the caller brought it."""
        return time.monotonic() - self._used if self._own and self._session is not None else 0.0

    @property
    def ready(self) -> bool:
        """Whether the session is there, so that `session` returns at once."""
        return self._session is not None

    def session(self) -> SparkSession:
        """The session, started if there is none, which takes seconds."""
        with self._lock:
            self._used = time.monotonic()
            if self._session is None:
                from samovar.runtime.spark.session import spark_session

                self._session = spark_session(master=self._master, conf=self._conf, app_name="samovar serve")
                _confined(self._session)
            return self._session

    def warm_up(self) -> None:
        """Start the session in the background, and run a tiny job in it. A failure shows at the first real use."""

        def work() -> None:
            from samovar.errors import SamovarError
            from samovar.runtime.spark.session import warm_up

            try:
                warm_up(self.session())
            except SamovarError:
                return

        threading.Thread(target=work, name="samovar-warm-up", daemon=True).start()

    def close(self) -> None:
        """Stop the session, if it was started here; otherwise restore its settings."""
        if not self._own and self._session is not None:
            for key, value in self._before.items():
                self._session.conf.unset(key) if value is None else self._session.conf.set(key, value)
        if self._own and self._session is not None:
            self._session.stop()
            self._session = None

    def rest(self) -> None:
        """Stop Spark and its Java process until `session` is called again. Nothing may be using it."""
        from samovar.runtime.spark.session import end_java

        with self._lock:
            if self._own and self._session is not None:
                self._session.stop()
                self._session = None
                end_java()


def _confined(session: SparkSession) -> dict[str, str | None]:
    """Set the server's settings on a session; returns the former ones."""
    before = {key: session.conf.get(key, None) for key in SESSION}
    for key, value in SESSION.items():
        session.conf.set(key, value)
    return before
