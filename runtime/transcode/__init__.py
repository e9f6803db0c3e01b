"""A net of one dialect as a net of another, by meaning.

A layer is copied where the target reads the copy as the same ops of the hub; all other layers go through
the hub, as an export does. `transcode` is all that others use.
"""

from caffeforge.runtime.transcode.transcoder import TranscodeResult, transcode

__all__ = ["TranscodeResult", "transcode"]
