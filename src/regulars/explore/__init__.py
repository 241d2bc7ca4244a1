"""Pages that combine data of several modules: home, customers, stores, consent, search and the simulator. Also the
public pages, which need no sign-in and show no organization's data: the first page, the API reference, the list of
errors and the documents. Owns no table and has no facts."""
