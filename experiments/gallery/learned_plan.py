"""Plans in a learned model of CartPole, and what happens when the environment takes the same actions.

    python experiments/gallery/learned_plan.py

Expect: the angle is off by 2.1 degrees after 10 steps, by 5.5 after 20. Learning, once: two minutes on one core.
"""

import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import layout
import numpy as np

import jaxzero as jz
from jaxzero import environments, models, nets
from jaxzero.train.muzero.unroll_loss import unroll

file = pathlib.Path("runs/learned_plan/weights.safetensors")
less = "--budget.steps 4 --evaluate.episodes 0 --acting.simulations 2" if layout.SMALL else ""
if not file.exists():  # the consistency loss keeps imagined states close to those of observations
    words = f"train --game cartpole --learn.consistency 2 --evaluate.final 0 --folder {file.parent} {less}"
    subprocess.run([sys.executable, "-m", "jaxzero", *words.split()], check=True)
network, params, _ = nets.load_learned(file)
world, keys = environments.cartpole(), jax.random.split(jax.random.key(0), 512)
model = models.learned(*nets.for_search(network, world.discount), jax.vmap(world.observe))
tilted = jax.random.uniform(keys[0], (512, 4), minval=-1) * jnp.array([0.5, 0.5, 0.1, 0.5])
start = jax.vmap(world.reset)(keys)._replace(motion=tilted)
search = jz.muzero(model, 128, dirichlet_fraction=0.0, act=jz.most_visited)
plan = jz.principal_variation(jax.jit(search)(params, keys, start).tree, 24)
step = lambda state, action: (jax.vmap(world.step)(state, action, keys)[0],) * 2
real = jnp.concatenate([tilted[None], jax.lax.scan(step, start, plan.T)[1].motion])
imagined, seen = unroll(network, params, tilted, plan, into=1)[0], jax.vmap(network.represent, (None, 0))(params, real)
values = [network.value.decode(network.predict(params, hidden)[1]) for hidden in (imagined, seen)]
wide = np.insert(imagined, 0, 1, -1)  # every other plan is used to fit a linear map from hidden states, from 5 steps
read = wide @ np.linalg.lstsq(wide[:6, ::2].reshape(-1, 65), real[:6, ::2].reshape(-1, 4))[0]
taken = np.insert(plan.T >= 0, 0, True, 0)  # a plan may be shorter than 24 steps
layout.save(layout.foretold(world, *(np.array(x)[:, :, 1::2] for x in ([read, real], values, [taken] * 2))), __file__)
