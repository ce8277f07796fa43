"""What does every engine need for a run? What a script finds (`environment`), what is fetched and stored (`plans`), the
program that moves the files (`stager`), and what is told about it (`reply`, `words`, `log_shares`). The drivers `local`
and `kubernetes` share it.
"""
