"""The gateways a text may leave through, behind one interface. The simulator owns `simulated_texts`."""
