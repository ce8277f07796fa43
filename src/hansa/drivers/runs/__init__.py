"""What does every engine need for a run? What a script finds (`environment`), how its inputs come and its outputs go
(`staging`, `stores`, `webdav`), and what it left (`left_files`). The drivers `local` and `kubernetes` share it.
"""
