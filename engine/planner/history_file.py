"""The history's SQLite file, which several processes open at once.

It is made in one transaction, so that whoever comes second finds it whole. A file of a newer
version is left alone; one that is no database, or a broken one, is set aside. A history never ends
a run: whatever else is wrong with the file becomes a notice, and from then on nothing is read or
kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

VERSION = 1
WAIT_SECONDS = 5.0  # for a lock that another process holds; they last milliseconds
JOURNALS = ("-journal", "-wal", "-shm")

_TABLES = (
    """CREATE TABLE IF NOT EXISTS attempt (
    id INTEGER PRIMARY KEY,
    machine TEXT NOT NULL,
    software TEXT NOT NULL,
    shape TEXT NOT NULL,
    started REAL NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('done','out_of_memory','cancelled','failed')),
    disturbed TEXT NOT NULL DEFAULT '',
    request TEXT NOT NULL
)""",
    """CREATE TABLE IF NOT EXISTS phase (
    attempt INTEGER NOT NULL REFERENCES attempt(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    placement TEXT,
    steps INTEGER NOT NULL,
    vram_forecast INTEGER, vram_measured INTEGER,
    ram_forecast INTEGER, ram_measured INTEGER,
    seconds_forecast REAL, seconds_measured REAL,
    PRIMARY KEY (attempt, name)
)""",
    "CREATE INDEX IF NOT EXISTS attempt_by_machine ON attempt (machine, shape, started)",
    f"PRAGMA user_version={VERSION}",
)


class _Damaged(sqlite3.DatabaseError):
    """A file that opens and is broken inside."""


class HistoryFile:
    """The file. `notices` says what is wrong with it; `enabled` whether it is read and written."""

    def __init__(self, path: Path, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self.path, self._wait_seconds = path, wait_seconds
        self.notices: list[str] = []
        self.enabled = True
        with self._or_a_notice():
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._prepare()
            except sqlite3.DatabaseError as why:
                if not _is_damage(why):
                    raise
                self._set_aside()

    def rows(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """What a query finds; nothing where the file cannot be used."""
        with self._or_a_notice():
            if self.enabled:
                with self._connect() as database:
                    return database.execute(query, tuple(values)).fetchall()
        return []

    def change(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Do `work` in one transaction; nothing where the file cannot be used."""
        with self._or_a_notice():
            if self.enabled:
                with self._connect() as database:
                    database.execute("BEGIN IMMEDIATE")
                    work(database)

    @contextmanager
    def _or_a_notice(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as why:
            self.enabled = False
            reason = getattr(why, "strerror", None) or why  # without the path: panels show notices
            self.notices.append(
                f"history {self.path.name} cannot be used now ({reason}): this time nothing is "
                "learned from it or kept in it. LOWPEAK_HOME can name another folder for it"
            )

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=self._wait_seconds)) as database:
            database.execute("PRAGMA foreign_keys=ON")
            with database:
                yield database

    def _prepare(self) -> None:
        """Make what is missing, look whether the file is whole and of this version."""
        with self._connect() as database:
            version = _version(database)
            if version == 0:
                # Rollback journal, SQLite's default: writes are few and small, and a write-ahead
                # log needs shared memory, which network folders do not have.
                database.execute("BEGIN IMMEDIATE")
                if _version(database) == 0:  # else another process was first
                    for statement in _TABLES:
                        database.execute(statement)
                database.commit()
                version = _version(database)
            if version > VERSION:
                self.enabled = False
                self.notices.append(
                    f"history {self.path.name} is of version {version}, this program knows "
                    f"{VERSION}: it is left alone and nothing is learned"
                )
                return
            (found,) = database.execute("PRAGMA quick_check").fetchone()
            if found != "ok":
                raise _Damaged("quick_check found damage")

    def _set_aside(self) -> None:
        """Rename a damaged file, with its journals, and start a new one.

        Of several processes that find it damaged one renames it; the others find the new one.
        """
        with self._alone():
            try:
                self._prepare()
                return
            except sqlite3.DatabaseError as why:
                if not _is_damage(why):
                    raise
                reason = str(why)
            number = 1
            while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
                number += 1
            for suffix in (*JOURNALS, ""):  # a new file must not meet an old journal
                part = self.path.with_name(self.path.name + suffix)
                if part.exists():
                    part.rename(aside.with_name(aside.name + suffix))
            self._prepare()
        self.notices.append(
            f"history {self.path.name} was damaged ({reason}); kept as {aside.name}"
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes out; SQLite's lock on an empty file goes with its process."""
        lock = self.path.with_name(f"{self.path.name}.lock")
        with closing(sqlite3.connect(lock, timeout=self._wait_seconds)) as database:
            database.execute("BEGIN EXCLUSIVE")
            yield


def _version(database: sqlite3.Connection) -> int:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return int(version)


def _is_damage(why: sqlite3.DatabaseError) -> bool:
    """Whether the file itself is broken: not a lock, a full disk or a folder without permission."""
    code = getattr(why, "sqlite_errorcode", 0) & 0xFF  # extended codes keep the kind there
    return isinstance(why, _Damaged) or code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
