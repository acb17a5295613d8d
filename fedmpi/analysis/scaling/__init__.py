"""How runs scale over ranks: tables, a model of a round's time fitted to measurements, predictions."""
