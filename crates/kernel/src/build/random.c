	/* Trunkline: a simulation repeats, so the numbers are those of the seed in the environment, by SplitMix64. */
	static unsigned long long state;
	static int asked, seeded;
	unsigned char *out = buf;
	size_t i;

	if (!asked) {
		const char *seed = getenv("UML_RANDOM_SEED");

		asked = 1;
		seeded = seed != NULL;
		if (seeded)
			state = strtoull(seed, NULL, 10);
	}
	if (!seeded)
		return getrandom(buf, len, flags);
	for (i = 0; i < len; i++) {
		unsigned long long z = (state += 0x9E3779B97F4A7C15ULL);

		z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
		z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
		out[i] = (z ^ (z >> 31)) & 0xFF;
	}
	return len;
