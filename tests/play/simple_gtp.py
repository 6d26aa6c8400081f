"""A program that speaks the protocol and knows tic-tac-toe: it takes the first square that is free.

python simple_gtp.py [dies|sleeps|cheats|resigns]     # what it does at its second move
python simple_gtp.py [mumbles|disagrees|dawdles]     # at the end
python simple_gtp.py [refuses|rejects]     # it refuses the third move that it is told; the first
python simple_gtp.py [chatters|foreign]     # it does not speak the protocol; it plays another game
"""

import sys
import time

NAMES = [f"{column}{row}" for row in "123" for column in "abc"]
LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def main(manner: str = "") -> None:
    board, moves, told = {}, 0, 0
    if manner == "chatters":
        sys.stdout.buffer.write(b"\xa1 welcome\n")
        sys.stdout.flush()
        time.sleep(60)
    for line in sys.stdin:
        command, *words = line.split()
        said = ""
        if command == "name":
            said = "first free square"
        elif command == "version":
            said = "1"
        elif command == "clear_board":
            board, moves, told = {}, 0, 0
        elif command == "play":
            told += 1
            if told == {"refuses": 3, "rejects": 1}.get(manner):
                print("? illegal move\n", flush=True)
                continue
            board[words[1].lower()] = words[0]
        elif command == "genmove":
            moves += 1
            said = next(name for name in NAMES if name not in board)
            if moves == 2 and manner == "dies":
                sys.exit(1)
            if moves == 2 and manner == "sleeps":
                time.sleep(60)
            said = "q16" if manner == "foreign" else said
            said = {"cheats": NAMES[0], "resigns": "resign"}.get(manner, said) if moves == 2 else said
            board[said] = words[0]
        elif command == "final_score":
            if manner == "dawdles":
                time.sleep(60)
            won = [c for c in ("black", "white") if any(all(board.get(NAMES[i]) == c for i in x) for x in LINES)]
            said = f"{won[0][0].upper()}+1" if won else "0"
            said = {"mumbles": "unknown", "disagrees": "W+99"}.get(manner, said)
        elif command != "quit":
            print("? unknown command\n", flush=True)
            continue
        print(f"= {said}\n", flush=True)
        if command == "quit":
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
