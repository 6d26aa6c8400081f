"""The commands of `jaxzero`."""
