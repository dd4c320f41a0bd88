# Created by `tandem shims`. Python imports this at startup if its folder is on PYTHONPATH: `python -m
# torch.distributed.run ...` and the like then start tandem instead. All other programs run as they are.
import os
import sys

TANDEM = "TANDEM_PROGRAM"
LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")


def module_and_arguments():
    with open("/proc/self/cmdline", "rb") as file:
        words = os.fsdecode(file.read()).split("\0")[1:-1]
    while words and words[0].startswith("-") and words[0] not in ("-m", "-c", "-"):
        takes_value = words.pop(0) in ("-W", "-X")
        if takes_value and words:
            words.pop(0)
    return words[1:] if words[:1] == ["-m"] else []


def make_way():
    here = os.path.dirname(__file__)
    sys.path[:] = [folder for folder in sys.path if folder != here]
    sys.modules.pop("sitecustomize", None)


words = module_and_arguments()
if words[:1] and words[0] in LAUNCHERS:
    try:
        os.execv(TANDEM, ["tandem", "run", sys.executable, "-m"] + words)
    except OSError as error:
        sys.stderr.write("error: cannot start %s: %s\nhint: run `tandem shims` again, or take %s out of PYTHONPATH\n"
                         % (TANDEM, error.strerror, os.path.dirname(__file__)))
        sys.stderr.flush()
        os._exit(4)
make_way()
import sitecustomize  # the next one on sys.path; `site` ignores an ImportError
