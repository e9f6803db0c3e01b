"""Shapes of what data layers load, as far as the net itself tells them."""

from __future__ import annotations

from typing import Protocol

from caffeforge.runtime.refusal import Refused


class Images(Protocol):
    """What Caffe's ImageDataParameter says; a field that is None is absent."""

    @property
    def batch_size(self) -> int | None: ...

    @property
    def new_height(self) -> int | None: ...

    @property
    def new_width(self) -> int | None: ...

    @property
    def is_color(self) -> bool | None: ...


class Transform(Protocol):
    """What Caffe's TransformationParameter says; a field that is None is absent."""

    @property
    def crop_size(self) -> int | None: ...


def image_shape(images: Images, transform: Transform) -> tuple[int, ...]:
    """Return the shape of a batch of images; Refused if neither a crop nor new sizes tell it."""
    crop = transform.crop_size or 0
    height, width = (crop, crop) if crop else (images.new_height or 0, images.new_width or 0)
    if not height or not width:
        raise Refused("the sizes of the images are told neither by crop_size nor by new_height and new_width")
    batch = 1 if images.batch_size is None else images.batch_size
    return batch, 1 if images.is_color is False else 3, height, width


class Memory(Protocol):
    """What Caffe's MemoryDataParameter says; a field that is None is absent."""

    @property
    def batch_size(self) -> int | None: ...

    @property
    def channels(self) -> int | None: ...

    @property
    def height(self) -> int | None: ...

    @property
    def width(self) -> int | None: ...


def memory_shape(memory: Memory) -> tuple[int, ...]:
    """Return the shape of a batch that lies in memory; Refused if one of its four sizes is not told."""
    sizes = tuple(size or 0 for size in (memory.batch_size, memory.channels, memory.height, memory.width))
    if not all(sizes):
        raise Refused("batch_size, channels, height and width must be given")
    return sizes
