"""Doubles of a cluster's servers, for the stock clients to talk to over HTTP on loopback."""
