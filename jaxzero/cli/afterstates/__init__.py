"""`jaxzero train --game 2048 --model rules`: values of afterstates, learned by temporal differences."""
