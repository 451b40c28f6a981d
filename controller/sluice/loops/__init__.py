"""The asynchronous tasks: observe, decide, write."""
