# Created by `tandem shims`. Python imports this at startup if its folder is on PYTHONPATH: `python -m
# torch.distributed.run ...` and the like then start tandem instead. All other programs run as they are.
import os
import sys

TANDEM = "TANDEM_PROGRAM"
LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
ACCELERATE = ["accelerate.commands.accelerate_cli", "launch"]  # what `accelerate launch` runs


def module_and_arguments():
    """After -m, which may be joined with flags before it and with the module: -um MODULE, -mMODULE."""
    with open("/proc/self/cmdline", "rb") as file:
        words = os.fsdecode(file.read()).split("\0")[1:-1]
    while words and words[0].startswith("-") and words[0] not in ("-", "--"):
        word = words.pop(0)
        if word.startswith("--"):
            value_is_next, flag, value = word == "--check-hash-based-pycs", "", ""
        else:
            place = next((i for i, letter in enumerate(word) if letter in "cmWX"), len(word))
            flag, value = word[place:place + 1], word[place + 1:]
            value_is_next = flag in ("W", "X") and not value
        if flag == "m":
            return ([value] if value else []) + words
        if flag == "c":
            return []
        del words[:value_is_next]
    return []


def make_way():
    here = os.path.dirname(__file__)
    sys.path[:] = [folder for folder in sys.path if folder != here]
    sys.modules.pop("sitecustomize", None)


words = module_and_arguments()
if words[:2] == ACCELERATE:
    words[:2] = ["accelerate.commands.launch"]
if words and words[0] in LAUNCHERS:
    try:
        os.execv(TANDEM, ["tandem", "run", sys.executable, "-m"] + words)
    except OSError as error:
        sys.stderr.write("error: cannot start %s: %s\nhint: run `tandem shims` again, or take %s out of PYTHONPATH\n"
                         % (TANDEM, error.strerror, os.path.dirname(__file__)))
        sys.stderr.flush()
        os._exit(4)
make_way()
import sitecustomize  # the next one on sys.path; `site` ignores an ImportError
