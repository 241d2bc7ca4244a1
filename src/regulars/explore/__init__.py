"""Pages that combine data of several modules: home, customers, stores, consent, search and the SMS simulator. Also the
public pages, which need no sign-in and show no organization's data: the landing page, the API reference, the list of
API errors and the documentation. The module owns no database table."""
