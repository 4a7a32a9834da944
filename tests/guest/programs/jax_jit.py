"""A jitted JAX function. Integers, so that results are exact."""

import jax
import jax.numpy as jnp

f = jax.jit(lambda x: jnp.cumsum(x * 3 + 1) % 1009)
print(jax.devices()[0].platform, int(f(jnp.arange(10000)).sum()))
