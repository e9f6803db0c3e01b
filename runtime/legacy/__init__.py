"""Nets in the formats before 2015, turned into the present one as Caffe itself does it."""
