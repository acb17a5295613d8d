"""The round loop: local training, collectives, server, evaluation, record."""
