"""What a controller shows of itself: the status, what explains a packet, and their text."""
