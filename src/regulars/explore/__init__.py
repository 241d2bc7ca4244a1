"""Pages that look across rooms. So far the public ones, which need no sign-in and show no organization's data: what
this server is and how to start, the API reference, and what each refusal means. Owns no table and has no facts."""
