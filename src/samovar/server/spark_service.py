"""The one Spark session of the server: started when it is first needed, or warmed up in the background.

A session nobody asked for in a while can be given back (`rest`): Spark and its Java process end, and with them the
memory they hold. The next one who asks starts it anew, which takes seconds.

The session has the settings that confine SQL (sql_reach.py), also one that was brought along; to that one they are
put back at the end.
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
    """Gives the session; all callers get the same. Threads wait while it starts."""

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
        self._guard = threading.Lock()
        self._used = time.monotonic()
        self._before = _confined(session) if session is not None else {}

    @property
    def idle(self) -> float:
        """Seconds since somebody asked for the session; 0 while there is none, or it is somebody else's."""
        return time.monotonic() - self._used if self._own and self._session is not None else 0.0

    @property
    def ready(self) -> bool:
        """Whether the session is there, so that asking for it takes no time."""
        return self._session is not None

    def session(self) -> SparkSession:
        """The session; starting it takes seconds."""
        with self._guard:
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
        """Stop the session, if it was started here; otherwise put back its settings."""
        if not self._own and self._session is not None:
            for key, value in self._before.items():
                self._session.conf.unset(key) if value is None else self._session.conf.set(key, value)
        if self._own and self._session is not None:
            self._session.stop()
            self._session = None

    def rest(self) -> None:
        """End Spark and its Java process until the session is asked for again. Nothing may be using it."""
        from samovar.runtime.spark.session import end_java

        with self._guard:
            if self._own and self._session is not None:
                self._session.stop()
                self._session = None
                end_java()


def _confined(session: SparkSession) -> dict[str, str | None]:
    """Give a session the server's settings; the answer is what they were."""
    before = {key: session.conf.get(key, None) for key in SESSION}
    for key, value in SESSION.items():
        session.conf.set(key, value)
    return before
