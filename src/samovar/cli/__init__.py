"""The command line: `main` finds the verb, and each verb lives in a module of its own name."""
