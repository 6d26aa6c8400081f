"""Other libraries' interfaces on top of jaxzero's search. A leaf: nothing else in jaxzero imports it."""
