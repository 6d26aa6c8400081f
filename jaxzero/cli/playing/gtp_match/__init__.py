"""Matches against a program that speaks the Go Text Protocol: `jaxzero match`."""
