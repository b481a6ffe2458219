"""Bugs that train without an error, each planted into a healthy task, and what finds them."""
