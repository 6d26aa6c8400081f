"""Playing in the browser: the page, the server, sessions, and the thread that searches for all of them."""
