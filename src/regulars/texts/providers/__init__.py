"""The SMS providers that send texts, behind one interface. The simulator owns `simulated_texts`."""
