"""The feature of flash-crowd control (NEWS): limits on new connections to destinations."""
