"""How good is a policy: `arena` plays games, `mistakes` looks at positions whose exact values are known."""
