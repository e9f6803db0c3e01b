"""Vendors' simulators behind ``caffeforge verify --runner``, and what installs them."""
