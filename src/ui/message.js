export function messageView({main}) { main.append('x'); return {close() {}}; }
