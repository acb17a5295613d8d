"""The leaderboard: tracks of federations on which methods are tuned alike, run with ten seeds and ranked."""
