"""From a failed epoch to an error that a person can act on."""
