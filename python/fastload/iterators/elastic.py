"""`Elastic`: torch's iteration with workers, whose number may change while an epoch runs.

Under AUTO, and for map-style datasets, samples are keyed: any worker may make any batch. Each batch goes to the
worker with the fewest unfinished ones. The lane starts and ends workers. In all other cases torch's own code
decides. Invariants: each requested batch is handed over once, by the worker it was requested from; and if a
sampler's order can depend on when it is asked, indices are taken on torch's schedule, whatever the number of
workers.
"""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from torch.utils.data._utils.worker import _ResumeIteration
from torch.utils.data.dataloader import _DatasetKind, _MultiProcessingDataLoaderIter

from fastload.draws.keyed import Key, Keys
from fastload.iterators.consumer import Maker, settable
from fastload.iterators.states_of_workers import StatesOfWorkers
from fastload.machine.auto import is_elastic

__all__ = ["Elastic"]


class Elastic(StatesOfWorkers):
    """Torch's iteration, with keyed samples if the user set no number of workers.

    Attributes:
        most_workers: Maximum number of workers; None without a limit.
    """

    most_workers: int | None = None
    _maker: Maker | None = None
    _lazy_images = False
    _keys: Keys | None = None
    _is_begun = True
    """False until the sampler is asked for the first batch: where samples are keyed, at the first `next`."""
    _later: int | None = None
    """How many workers there will be behind the first request; None if they are there."""
    _schedule: int | None = None
    """How many batches ahead indices are taken; None where that makes no difference."""
    _loader: Any  # a weak reference
    _index_queues: list[Any]

    def set_workers(self, number: int) -> None:
        """Sets the number of workers, each `prefetch_factor` batches ahead.

        Batches and their order stay the same. A worker that is no longer needed finishes its batches and ends;
        the next epoch begins with the new number. Does nothing after the consumer has taken over: its dataset
        is not forked again.

        Args:
            number: The number, at least 1.

        Raises:
            OSError: The system refuses another worker; there are as many as could be started.
            ValueError: The user set `num_workers`, the dataset is iterable, or the number is out of range.
        """
        number = self._checked("set_workers", number)
        if self.most_workers is not None and number > self.most_workers:
            msg = f"set_workers({number}): this dataset can have {self.most_workers} at most"
            raise ValueError(msg)
        if self._maker is None:
            self.change(number, self._prefetch_factor * number)
        self._was_set()

    def set_depth(self, number: int) -> None:
        """Sets the number of batches ahead, of all workers together.

        With a sampler that may repeat an index, or is not torch's, it never exceeds the initial number.

        Args:
            number: The number, at least 1.

        Raises:
            ValueError: The user set `num_workers`, the dataset is iterable, or the number is below 1.
        """
        number = self._checked("set_depth", number)
        if self._maker is None:
            self.change(self._planned_workers, number)
        self._was_set()

    def change(self, workers: int, depth: int) -> None:
        """Sets both numbers at once.

        Raises:
            OSError: The system refuses another worker; there are as many as could be started.
        """
        self._later = None
        self._depth = depth if self._schedule is None else min(depth, self._schedule)
        loader = self._loader()
        try:
            if not self._shutdown:
                self._resize(workers)
        finally:
            self._num_workers = workers if self._shutdown else len(self._active)
            if loader is not None:
                loader._workers_now = self._num_workers
        if self._is_begun and not self._shutdown:
            self._fill()

    def take_over(self) -> None:
        """Makes the consumer take over the batches that are not requested from workers yet.

        The workers finish their batches and end.
        """
        if self._maker is not None:
            return
        self._later = None
        self._maker = Maker(self, lazy_images=self._lazy_images)
        self._maker.begin()
        self._leaving += self._active
        self._active.clear()
        self._dismiss_idle()

    def consumer_batches(self) -> int:
        """Returns how many batches the consumer has made."""
        return 0 if self._maker is None else self._maker.batches

    @abstractmethod
    def _start_worker(self, worker: int, among: int) -> tuple[int, Any]:
        """Starts a worker.

        Args:
            worker: Its number, as in `get_worker_info()`.
            among: Number of workers that there will be.

        Returns:
            Its index in torch's lists of workers, the lowest that is free, and its queue of tasks.
        """

    @abstractmethod
    def _release_worker(self, place: int) -> bool:
        """Frees the index of a worker that was asked to end; returns true if it has ended."""

    @abstractmethod
    def _is_here(self) -> bool:
        """Returns true if the workers are this process's, not of one that it was forked from."""

    def _reset(self, loader: Any, first_iter: bool = False) -> None:  # noqa: FBT001 (torch's)
        if first_iter and is_elastic(loader):
            self._keys = Keys(int(self._base_seed), batched=self._auto_collation)
            self._numbers = list(range(self._num_workers))
            # indices in torch's lists of workers: of those that are needed, of those that are not but
            # have work, and of those that were asked to end
            self._active = list(self._numbers)
            self._leaving: list[int] = []
            self._ending: list[int] = []
        if self._keys is None and self._maker is not None:
            super(_MultiProcessingDataLoaderIter, self)._reset(loader)
            self._maker.keep_streams(self._cursor)
            self._maker.begin_at(self._cursor, None)
            return
        if self._keys is None:
            super()._reset(loader, first_iter)
            if not first_iter:
                self._begin_states()
            if self._is_iterable and not self._in_order and not self._cursor.from_workers:
                self._cursor.from_workers = [0] * self._num_workers
            return
        if not first_iter:
            self._unopened = self._before_draws(loader)
            super(_MultiProcessingDataLoaderIter, self)._reset(loader)
        is_private = self._keys.begin(self._index_sampler, self._cursor)
        self._asked: dict[int, tuple[Any, Key]] = {}
        self._is_begun = False
        if self._maker is not None:
            self._shutdown_workers()  # what they were asked for in an epoch that was left early
            self._send_idx = self._rcvd_idx = 0
            self._task_info = {}
            self._maker.begin()
            return
        own = self._loader()  # whose truth would be its length, which it may not have
        chosen = int((loader if own is None else own).num_workers)  # whatever the number of now
        self._schedule = None if is_private else self._prefetch_factor * chosen
        if first_iter:
            self._depth = self._first_depth()
            # a state from before the first `next` is that behind the batches to drop
            self._is_begun = self._to_drop > 0
            super()._reset(loader, first_iter)
        else:
            self._resume()

    @property
    def _planned_workers(self) -> int:
        """The number of workers, with those that are started behind the first request."""
        return int(self._later or self._num_workers)

    def _was_set(self) -> None:
        """Called after a caller set the workers or the depth."""

    def _first_depth(self) -> int:
        """Returns the depth of the first epoch."""
        return int(self._prefetch_factor * self._planned_workers)

    def _resume(self) -> None:
        """Begins an epoch with the workers of the last one, as torch does."""
        self._send_idx = self._rcvd_idx = self._tasks_outstanding = 0
        self._task_info = {}
        self._workers_num_tasks = [0] * len(self._index_queues)
        resumed = [*self._active, *self._leaving]
        for place in resumed:
            self._index_queues[place].put(_ResumeIteration(self._shared_seed))
        while resumed:
            seq, _ = self._get_data()  # type: ignore[no-untyped-call]
            if isinstance(seq, _ResumeIteration):
                resumed.pop()

    def _try_put_index(self) -> None:
        if self._keys is None:
            if self._send_idx == 0:  # an epoch that is continued goes on with the next worker
                for _ in range(self._cursor.next_worker % self._num_workers):
                    next(self._worker_queue_idx_cycle)
            super()._try_put_index()
        elif self._is_begun:
            self._fill()

    def _next_data(self) -> Any:
        if not self._is_begun:
            self._begin()
        is_idle = self._schedule is not None and not self._task_info
        if is_idle and self._requested() == self._send_idx:  # no batch is left to be made again
            self._pulls.check()
        try:
            while True:
                before = self._requested() - len(self._task_info)
                try:
                    if self._maker is not None and not self._task_info:
                        batch = self._made_here(self._maker)
                    else:
                        batch = super()._next_data()  # type: ignore[no-untyped-call]
                except Exception as error:
                    is_of_batch = self._requested() - len(self._task_info) > before
                    if not (is_of_batch and self._was_raised(error)):
                        raise
                if self._to_drop == 0 or not self._is_dropped():
                    break
        except StopIteration:
            self._cursor.is_finished = True
            for worker, moved in self._ended.items():
                self._keep(worker, moved)
            self._ended.clear()
            if self._is_iterable and self._maker is None:
                self._keep_states()
            elif self._maker is not None and self._persistent_workers:
                self._maker.keep_streams(self._cursor)  # which go on in the next epoch
            if self._keys is not None and not self._shutdown:
                self._dismiss_idle()
            raise
        finally:
            if self._dataset_kind == _DatasetKind.Map:  # also a batch that failed was taken
                cursor, requested = self._cursor, self._requested()
                cursor.taken = cursor.before + requested - len(self._task_info)
                if not self._in_order:
                    cursor.note_overtaken(requested, self._task_info)
                self._keep_states()
        if self._dataset_kind == _DatasetKind.Iterable:
            self._cursor.taken += 1
            if self._cursor.from_workers:
                self._cursor.from_workers[self._made_by] += 1
            self._keep_states()
        return batch

    def _made_here(self, maker: Maker) -> Any:
        """Returns the next batch, made by the consumer.

        Raises:
            StopIteration: There is none.
        """
        if self._keys is None:  # of an iterable dataset, whose one worker is gone
            return maker.make(self._next_index(), None)
        if self._ending and not self._shutdown:
            self._dismiss_idle()
        if maker.pending is None:
            try:
                indices = self._indices()
            except StopIteration:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise
            maker.pending = indices, self._keys.next(indices)
            self._send_idx += 1
        is_taken = True  # by an error, too, which takes the place of its batch
        try:
            self._keep_schedule()
            return maker.make(*maker.pending)
        except KeyboardInterrupt:
            is_taken = False  # but left to be made again
            raise
        finally:
            if is_taken:
                maker.pending = None
                self._rcvd_idx += 1

    def _requested(self) -> int:
        """Returns the number of batches that were requested, without one that an interrupt left to be made again."""
        is_pending = self._maker is not None and self._maker.pending is not None
        return self._send_idx - is_pending

    def _begin(self) -> None:
        """Requests the first batches of an epoch."""
        self._fill()
        self._is_begun = True

    def _fill(self) -> None:
        """Requests batches up to the depth."""
        assert self._keys is not None
        self._keep_schedule()
        if self._maker is not None:
            self._dismiss_idle()
            return
        while len(self._task_info) < self._depth:
            try:
                indices = self._indices()
            except StopIteration:
                break
            if isinstance(indices, Iterator):  # which no process can be sent
                indices = list(indices)
            place, key = self._idlest(), self._keys.next(indices)
            self._index_queues[place].put((self._send_idx, indices, key))
            self._asked[self._send_idx] = indices, key
            self._task_info[self._send_idx] = (place,)
            self._workers_num_tasks[place] += 1
            self._tasks_outstanding += 1
            self._send_idx += 1
        if self._leaving or self._ending:
            self._dismiss_idle()

    def _keep_schedule(self) -> None:
        """Takes the indices from the sampler that torch would have taken by now, if that can matter."""
        if self._schedule is not None:
            self._pulls.fill(self._schedule - len(self._task_info))

    def _indices(self) -> Any:
        """Returns the indices of the next batch to request.

        Raises:
            StopIteration: There is none.
        """
        if self._schedule is not None and not self._pulls.waiting:
            raise StopIteration
        return self._next_index()

    def _in_hand(self) -> list[int]:
        """Returns the indices of the workers of all batches that are not finished."""
        return [task[0] for task in self._task_info.values() if len(task) == 1]

    def _idlest(self) -> int:
        """Returns the index of the worker with the fewest unfinished batches."""
        in_hand = self._in_hand()
        return min(self._active, key=in_hand.count)

    def _resize(self, number: int, among: int | None = None) -> None:
        """Starts workers, or marks some to end.

        Args:
            number: How many there will be.
            among: The number that new ones are told, if not the same.
        """
        while len(self._active) > number:
            self._leaving.append(self._active.pop())
        self._dismiss_idle()
        while len(self._active) < number:
            if self._leaving:  # and still at work
                self._active.append(self._leaving.pop())
                continue
            taken = [self._numbers[place] for place in self._active]
            worker = next(each for each in range(number) if each not in taken)
            place, tasks = self._start_worker(worker, among or number)
            self._numbers[place : place + 1] = [worker]
            self._index_queues[place : place + 1] = [tasks]
            self._workers_status[place : place + 1] = [True]
            self._workers_num_tasks[place : place + 1] = [0]
            self._active.append(place)

    def _dismiss_idle(self) -> None:
        """Ends marked workers that have no unfinished batches; forgets those that have ended."""
        in_hand = self._in_hand()
        for place in [each for each in self._leaving if each not in in_hand]:
            self._leaving.remove(place)
            self._index_queues[place].put(None)
            self._workers_status[place] = False
            self._ending.append(place)
        self._ending = [place for place in self._ending if not self._release_worker(place)]

    def _checked(self, what: str, number: int) -> int:
        """Returns a number that may be set: that the user did not, and on which no samples depend."""
        chosen = None if self._keys is not None else int(self._num_workers)
        number = settable(what, number, self._dataset_kind, chosen)
        if not self._is_here():
            msg = f"{what}: this iterator belongs to the parent process; call iter(loader) in this one"
            raise RuntimeError(msg)
        return number
