"""The part of the native core that asks Python for what it does not decode; `_lib` has it."""

from typing import final

@final
class Requests:
    """Files of one stream that are refused here, as they come; ends when the stream is closed.

    Waits detached from the interpreter, and keeps nothing of the stream alive.
    """

    def __iter__(self) -> Requests: ...
    def __next__(self) -> Request: ...

@final
class Request:
    """A file to decode. Dropping it without an answer fails its sample."""

    @property
    def source(self) -> str | bytes:
        """The path of the file, or its bytes."""
    @property
    def mode(self) -> str:
        """The mode that it is to be decoded to, as given to `Program`."""
    def answer(self, pixels: bytes, shape: tuple[int, int, int]) -> None:
        """Gives the pixels, row after row, and their (height, width, channels).

        Raises:
            ValueError: It was answered already.
        """
    def fail(self, error: BaseException, fault: str = "fatal") -> None:
        """Gives the exception that takes the place of the batch, or of the sample if the stream is tolerant.

        Args:
            error: The exception.
            fault: The class of the error, as `fastload.faults.fault_of` returns it.

        Raises:
            ValueError: It was answered already, or another fault.
        """
