"""Password hashes that take no time; a test of the rules of passwords shows that those of the program take much."""

from argon2 import PasswordHasher

# A hash itself says how much work it needs, so a server checks these quickly without knowing about them.
QUICK = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
