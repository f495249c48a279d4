"""One item of an iterator made ahead, on a thread, while the one before is used."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")


@contextmanager
def read_ahead(items: Iterable[Item]) -> Iterator[Iterator[Item]]:
    """The same items; never more than one waits beside the one in use.

    What the iterator raises comes out where its item would have come. Leaving the body early stops
    after the item that is being made.
    """
    change = threading.Condition()
    ready: list[tuple[str, Any]] = []
    left = False

    def make() -> None:
        """On the thread: an item whenever none is waiting, until the end, a failure or a stop."""
        source = iter(items)
        while True:
            with change:
                change.wait_for(lambda: left or not ready)
                if left:
                    return
            try:
                found = ("item", next(source))
            except StopIteration:
                found = ("end", None)
            except BaseException as failed:  # the border of a thread: the consumer raises it
                found = ("failure", failed)
            with change:
                ready.append(found)
                change.notify_all()
            if found[0] != "item":
                return
            del found  # else it would wait here beside the next

    def given() -> Iterator[Item]:
        """For the consumer: items in order, and what the thread met in place of one."""
        while True:
            with change:
                change.wait_for(lambda: ready)
                kind, value = ready.pop(0)
                change.notify_all()
            if kind == "end":
                return
            if kind == "failure":
                raise value
            yield value
            del value

    thread = threading.Thread(target=make, name="lowpeak-ahead", daemon=True)
    thread.start()
    try:
        yield given()
    finally:
        with change:
            left = True
            change.notify_all()
        thread.join()
